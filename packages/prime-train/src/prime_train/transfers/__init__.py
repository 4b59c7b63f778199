"""Files between this machine and a volume, over the S3 protocol.

`paths` and `planning` are pure: what goes where, and what is refused; `surveys` looks at what is
on the volume for them. `s3_protocol` makes and reads requests with botocore, `store` sends them
over the core's transport. `leases` and `keys` hold the temporary keys, `journals` what a transfer
that was killed has done, `uploads` and `downloads` move files, `landing` puts them in their place.
"""
