data = "values"
