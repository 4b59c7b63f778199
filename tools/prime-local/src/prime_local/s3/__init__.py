"""Object storage over the S3 protocol: where the files of training volumes are.

Kept servers were tried first. moto holds an object in memory several times over; `rclone serve s3`
forgets metadata and unfinished uploads with its process, and holds the parts it waits for.
"""
