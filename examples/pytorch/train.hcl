# The input pipeline train:loader, as it is, part by part. This file was written by
#
#   pipectl init --from train:loader --step train:step -o train.hcl
#
# To find the part that starves the training step:
#
#   pipectl run train.hcl
#
# and then the interpreter was made a variable. One of the stages starves the training step. Which one?
#
#   pipectl run examples/pytorch -e loader

variable "python" {
  type        = string
  default     = "python3"
  description = "An interpreter that has PyTorch and torchvision."
}

experiment "loader" {
  seed = 0 # the same seed gives the same batches

  # Each worker process loads, transforms and collates whole batches, as the DataLoader's do.
  # What the loader has besides stays in force: shuffle=True, persistent_workers=True.
  pool "loader" {
    workers  = 2 # num_workers
    prefetch = 2 # prefetch_factor: batches a worker

    # The transforms are taken out of the dataset, and are stages of their own. 8 samples were compared: they equal the
    # untouched dataset's, bit for bit.
    load "python" "image_folder" {
      loader = "train:loader"
      lift   = ["transform"] # what the stages below do
      python = var.python
    }

    # RandomResizedCrop(size=(224, 224), scale=(0.08, 1.0), ratio=(0.75, 1.3333), …)
    augment "python" "random_resized_crop" {
      callable = "train:loader.dataset.transform.transforms[0]"
    }

    # RandomHorizontalFlip(p=0.5)
    augment "python" "random_horizontal_flip" {
      callable = "train:loader.dataset.transform.transforms[1]"
    }

    # ColorJitter(brightness=[0.6, 1.4], contrast=[0.6, 1.4], saturation=[0.6, 1.4], hue=[-0.1, 0.1])
    augment "python" "color_jitter" {
      callable = "train:loader.dataset.transform.transforms[2]"
    }

    # GaussianBlur(kernel_size=(23, 23), sigma=(0.1, 2.0))
    augment "python" "gaussian_blur" {
      callable = "train:loader.dataset.transform.transforms[3]"
    }

    # ToTensor()
    prepare "python" "to_tensor" {
      callable = "train:loader.dataset.transform.transforms[4]"
    }

    # Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    prepare "python" "normalize" {
      callable = "train:loader.dataset.transform.transforms[5]"
    }

    batch {
      size      = 8
      drop_last = false
    }
  }

  train "python" "step" {
    callable = "train:step"
  }
}
