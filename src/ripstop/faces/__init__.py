"""How people and programs meet ripstop. Faces contain no style code: `picture` and `explain` tell them what to show."""
