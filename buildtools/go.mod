module github.com/openphone-host/openphone/buildtools

go 1.26.0

require (
	github.com/openphone-host/openphone v0.0.0-00010101000000-000000000000
	google.golang.org/protobuf v1.36.12
)

replace github.com/openphone-host/openphone => ../
