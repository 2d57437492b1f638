output "uri" {
  description = "URL of the function, without a slash at the end."
  value       = google_cloudfunctions2_function.main.service_config[0].uri
}
