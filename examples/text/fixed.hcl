# The same pipeline with what the session on "text" suggests: the tokeniser keeps its table of ranks.
#
#   pipectl run examples/text -e text_fixed
#   pipectl compare latest~1 latest --db examples/text/.pipectl/results.db

experiment "text_fixed" {
  description = "The same model, ranks kept"
  seed        = 42

  pool "loader" {
    workers = 2

    load "python" "documents" {
      dataset = "text:Documents"
      shuffle = true
    }
    prepare "python" "clean" { callable = "text:clean" }
    prepare "python" "tokenize" {
      callable = "text:CachedTokenizer"
      args     = { merges = "merges.txt" }
    }
    augment "python" "window" { callable = "text:window" }

    batch {
      size    = 8
      collate = "text:pad"
    }
  }

  train "python" "step" {
    callable = "text:Bigrams"
    args     = {}
  }
}
