locals { from_c = 2 }
