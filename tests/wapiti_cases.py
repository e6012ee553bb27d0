"""A small model file of Wapiti, by hand."""

MODEL = b"""#mdl#2#10
#rdr#3/0/0
9:u:%x[0,0],
9:*:%X[0,0],
1:b,
#qrk#2
1:N,
1:D,
#qrk#5
5:u:the,
5:*:the,
5:u:cat,
1:b,
5:*:cat,
1=0x1.8p+1
0=-0x1p-2
2=0x1p-1
5=0x1p+0
6=-0x1p+0
8=0x1p+1
11=0x1.4p+0
12=0x1p-3
14=0x1.999999999999ap-4
19=-0x1p+0
"""
