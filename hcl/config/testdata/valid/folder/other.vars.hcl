data = "not read without being asked for"
