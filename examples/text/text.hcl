# A tokeniser written in Python feeds a small language model. The loader's two worker processes read, clean and tokenise
# pages, cut windows out of them and pad them to batches, as a PyTorch DataLoader's workers do; neither torch nor numpy
# is needed. One stage starves the step. Which one?
#
#   pipectl run examples/text -e text

experiment "text" {
  description = "Bigram model on byte pairs"
  seed        = 42

  pool "loader" {
    workers = 2

    load "python" "documents" {
      dataset = "text:Documents"
      shuffle = true
    }
    prepare "python" "clean" { callable = "text:clean" }
    prepare "python" "tokenize" {
      callable = "text:Tokenizer"
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
