"""What building models costs on Spark: counted after, estimated before."""
