variable "name" {
  description = "Name of the function and of its Cloud Run service."
  type        = string
}

variable "entry_point" {
  description = "The registered name in the code."
  type        = string
}

variable "zip" {
  description = "Path of the built zip."
  type        = string
}

variable "deployment" {
  description = "Where functions are deployed, and what builds them."
  type = object({
    project           = string
    region            = string
    bucket            = string
    docker_repository = string
    build_account     = string
    labels            = map(string)
  })
}

variable "settings" {
  description = "Size, time limit in seconds, and whether only Google's own services may call."
  type = object({
    memory        = string
    cpu           = string
    timeout       = number
    internal      = bool
    min_instances = number
    max_instances = number
  })
}

variable "account" {
  description = "Email of the function's service account."
  type        = string
}

variable "environment" {
  description = "Environment variables."
  type        = map(string)
}

variable "invokers" {
  description = "IAM members that may call, each under a name that is known before anything is created."
  type        = map(string)
}

variable "egress_subnetwork" {
  description = "Where all outgoing traffic goes through; null = the platform's own way out."
  type = object({
    network    = string
    subnetwork = string
  })
  default = null
}
