# The same model, fed by pipectl's own stages. Lines of the book are joined until an item has about the text of a sequence;
# the tokeniser gives the ids of text.py, by the same merges.
#
#   pipectl run examples/text -e text_native

experiment "text_native" {
  description = "The same model, without Python above the step"
  seed        = 42

  load "text_lines" "lines" {
    files     = ["opticks.txt"]
    join      = "440B"
    separator = " "
    shuffle   = true
  }
  prepare "tokenize" "tokenize" { tokenizer = "tokenizer.json" }
  prepare "pack" "pack" { length = 128 }

  batch { size = 8 }

  train "python" "step" {
    callable = "text:DenseBigrams"
    args     = {}
  }
}
