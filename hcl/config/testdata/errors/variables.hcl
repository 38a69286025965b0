# Mistakes in variables.
variable "required" { # error: No value for variable
  type = number
}

variable "typo" {
  type    = strng # error: Invalid type specification
  default = "x"
}

variable "mismatch" {
  type    = number
  default = "ten" # error: Wrong type
}

variable "list" {
  type    = list(number)
  default = [1, "two"] # error: Wrong type
}

variable "null" {
  default = null # error: Null value
}

variable "dependent" {
  default = local.size # error: Reference in a constant
}

variable "twice" { default = 1 }
variable "twice" { default = 2 } # error: Duplicate name

variable {}           # error: Wrong labels
variable "my size" {} # error: Malformed name

variable "unknown" {
  default     = 1
  descripton  = "A size." # error: Unknown attribute
  sensitive   = true      # error: Unknown attribute
  description = 3         # error: Wrong type
  validate {}             # error: Unknown block
}

variable "checked" {
  type    = number
  default = -1 # error: Invalid value for variable
  validation {
    condition     = var.checked > 0
    error_message = "checked must be positive."
  }
  validation { # error: Missing attribute
    condition = true
  }
  validation {
    condition     = "maybe" # error: Wrong type
    error_message = "Never."
  }
  validation {
    condition     = var.checked < 0
    error_message = []      # error: Wrong type
    hint          = "None." # error: Unknown attribute
  }
  validation {
    condition     = var.chcked > 0 # error: Undeclared variable
    error_message = "Never."
  }
}

experiment "variables" {
  seed = var.requird # error: Undeclared variable
  load "folder" "photos" { path = var.typo }
  batch { size = var.mismatch }
  train "step" "step" {}
}
