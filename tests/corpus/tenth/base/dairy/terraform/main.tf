terraform {
  backend "s3" {
    bucket = "dairy-terraform"
    key    = "lake.tfstate"
    region = "eu-central-1"
  }
}

resource "aws_s3_bucket" "lake" {
  bucket = "dairy-lake"

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_versioning" "lake" {
  bucket = aws_s3_bucket.lake.id
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "lake" {
  bucket = aws_s3_bucket.lake.id
  rule {
    id     = "tmp"
    status = "Enabled"
    filter { prefix = "tmp/" }
    expiration { days = 3 }
  }
}

resource "aws_glue_catalog_database" "mart" {
  name         = "mart"
  location_uri = "s3://dairy-lake/hive/mart.db"
}

resource "aws_lakeformation_permissions" "portal" {
  principal   = "arn:aws:iam::111122223333:role/portal"
  permissions = ["SELECT"]
  table {
    database_name = aws_glue_catalog_database.mart.name
    name          = "farm_statement"
  }
}

resource "aws_db_instance" "state" {
  identifier              = "dairy-state"
  engine                  = "postgres"
  engine_version          = "15.7"
  instance_class          = "db.t4g.medium"
  backup_retention_period = 14
  deletion_protection     = true
  skip_final_snapshot     = false
}
