# Inputs that would do harm are refused before anything is planned.

mock_provider "google" {}

variables {
  project_id       = "my-project"
  region           = "europe-west1"
  installation_id  = "prod"
  proxy_namespaces = ["crawlers"]
  cluster          = { endpoint = "https://gke-abc.europe-west1.gke.goog" }
  network          = { name = "default", health_range = "10.20.0.0/26" }
  subnetworks      = [{ region = "europe-west1", name = "default" }]
  crawler_ranges   = ["198.51.100.0/24"]
  crawlers         = ["serviceAccount:crawler@my-project.iam.gserviceaccount.com"]
  dist_dir         = "dist"
}

run "installation_id_in_capitals" {
  command = plan
  variables {
    installation_id = "Prod"
  }
  expect_failures = [var.installation_id]
}

run "installation_id_too_short" {
  command = plan
  variables {
    installation_id = "p1"
  }
  expect_failures = [var.installation_id]
}

run "installation_id_too_long" {
  command = plan
  variables {
    installation_id = "a2345678901234567"
  }
  expect_failures = [var.installation_id]
}

run "installation_id_with_hyphen" {
  command = plan
  variables {
    installation_id = "prod-eu"
  }
  expect_failures = [var.installation_id]
}

run "installation_id_empty" {
  command = plan
  variables {
    installation_id = ""
  }
  expect_failures = [var.installation_id]
}

run "crawlers_from_everywhere" {
  command = plan
  variables {
    crawler_ranges = ["0.0.0.0/0"]
  }
  expect_failures = [var.crawler_ranges]
}

run "crawlers_from_everywhere_among_others" {
  command = plan
  variables {
    crawler_ranges = ["198.51.100.0/24", "0.0.0.0/0"]
  }
  expect_failures = [var.crawler_ranges]
}

run "crawlers_from_everywhere_in_two_halves" {
  command = plan
  variables {
    crawler_ranges = ["0.0.0.0/1", "128.0.0.0/1"]
  }
  expect_failures = [var.crawler_ranges]
}

run "crawlers_from_everywhere_in_ipv6" {
  command = plan
  variables {
    crawler_ranges = ["::/0"]
  }
  expect_failures = [var.crawler_ranges]
}

run "crawlers_from_nowhere" {
  command = plan
  variables {
    crawler_ranges = []
  }
  expect_failures = [var.crawler_ranges]
}

run "crawlers_from_a_name" {
  command = plan
  variables {
    crawler_ranges = ["crawlers.example.com"]
  }
  expect_failures = [var.crawler_ranges]
}

run "leases_for_all_users" {
  command = plan
  variables {
    crawlers = ["allUsers"]
  }
  expect_failures = [var.crawlers]
}

run "leases_for_all_authenticated_users" {
  command = plan
  variables {
    crawlers = ["allAuthenticatedUsers"]
  }
  expect_failures = [var.crawlers]
}

run "plans_for_all_users" {
  command = plan
  variables {
    operators = ["allUsers"]
  }
  expect_failures = [var.operators]
}

run "no_namespace" {
  command = plan
  variables {
    proxy_namespaces = []
  }
  expect_failures = [var.proxy_namespaces]
}

run "a_namespace_beside_all" {
  command = plan
  variables {
    proxy_namespaces = ["*", "crawlers"]
  }
  expect_failures = [var.proxy_namespaces]
}

run "a_namespace_that_is_none" {
  command = plan
  variables {
    proxy_namespaces = ["Crawlers"]
  }
  expect_failures = [var.proxy_namespaces]
}

run "cluster_without_tls" {
  command = plan
  variables {
    cluster = { endpoint = "http://gke" }
  }
  expect_failures = [var.cluster]
}

run "health_range_too_small" {
  command = plan
  variables {
    network = { name = "default", health_range = "10.20.0.0/28" }
  }
  expect_failures = [var.network]
}

run "no_subnetwork" {
  command = plan
  variables {
    subnetworks = []
  }
  expect_failures = [var.subnetworks]
}

run "credentials_beside_the_rest" {
  command = plan
  variables {
    firestore = { database = "one", credentials_database = "one" }
  }
  expect_failures = [var.firestore]
}

run "lease_default_beyond_its_bounds" {
  command = plan
  variables {
    lease = { ttl_default_seconds = 5 }
  }
  expect_failures = [var.lease]
}

run "orphans_deleted_at_once" {
  command = plan
  variables {
    gc = { min_age_seconds = 0 }
  }
  expect_failures = [var.gc]
}

run "a_function_that_is_none" {
  command = plan
  variables {
    functions = { watcher = {} }
  }
  expect_failures = [var.functions]
}

run "a_port_that_is_none" {
  command = plan
  variables {
    proxy_ports = [0]
  }
  expect_failures = [var.proxy_ports]
}

run "the_whole_network_as_target" {
  command = plan
  variables {
    private_targets = ["10.0.0.0/8"]
  }
  expect_failures = [var.private_targets]
}

run "runbooks_in_the_clear" {
  command = plan
  variables {
    alerts = { runbooks_url = "http://example.com/runbooks" }
  }
  expect_failures = [var.alerts]
}
