"""How people and programs meet ripstop. Faces contain no style code: `picture` and `explain` tell them what to show."""


# `ripstop serve` and `ripstop web`: HTTP faces and a worker in one process, behind one door.
#
# Above the faces, because it puts them together; they do not know one another.
