from crfkit.cli.entry import main

main()
