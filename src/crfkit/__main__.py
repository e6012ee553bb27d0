from crfkit.cli.main import main

main()
