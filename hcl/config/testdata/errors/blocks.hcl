# Mistakes in blocks, their labels and their order.
setting = 3 # error: Attribute outside a block

load "folder" "photos" {} # error: Unknown block
variables "x" {}          # error: Unknown block

experiment {} # error: Wrong labels # error: Missing load block # error: Missing batch block # error: Missing train block

experiment "two words" { # error: Malformed name
  load "folder" "photos" { path = "photos" }
  batch { size = 1 }
  train "step" "step" {}
}

experiment "all" { # error: Reserved name
  load "folder" "photos" { path = "photos" }
  batch { size = 1 }
  train "step" "step" {}
}

experiment "unknown" {
  load "foldr" "photos" { # error: Unknown type
    path    = var.photos # error: Undeclared variable
    workers = 0          # error: Value out of range
  }
  prepare "flip" "flip" {}  # error: Unknown type
  perpare "scale" "small" { # error: Unknown block
    size = 4
  }
  variable "x" {}         # error: Unknown block
  prepare "scale" {}      # error: Wrong labels
  prepare "wait" "a" "b" {} # error: Wrong labels
  prepare "decode" "4k" {} # error: Malformed name
  batch "b" { size = 1 }   # error: Wrong labels
  train "step" "step" {}
}

experiment "empty" {} # error: Missing load block # error: Missing batch block # error: Missing train block

experiment "empty" { # error: Duplicate name
  load "folder" "photos" { path = "photos" }
  batch { size = 1 }
  train "step" "step" {}
}

experiment "order" {
  prepare "decode" "early" {}
  load "folder" "photos" { path = "photos" } # error: Load after prepare
  transfer {}
  batch { size = 1 }          # error: Batch after transfer
  augment "flip" "late" {}    # error: Augment after transfer
  load "folder" "more" { path = "photos" } # error: Load after transfer
  train "step" "step" {}
  prepare "decode" "after" {} # error: Prepare after train
  batch { size = 2 }          # error: Second batch block
  transfer {}                 # error: Second transfer block
  train "step" "again" {}     # error: Second train block
  bisect {}
  expect {}
  bisect {} # error: Second bisect block
  expect {} # error: Second expect block
}

experiment "duplicates" {
  load "folder" "photos" { path = "photos" }
  prepare "decode" "a" {}
  augment "flip" "a" {}
  prepare "scale" "a" { size = 4 } # error: Duplicate name
  batch { size = 1 }
  train "step" "a" {}
}
