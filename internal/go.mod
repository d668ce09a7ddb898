// What several modules of this repository share; it needs nothing heavy.
module cozy-kubevirt/internal

go 1.26.0

require (
	github.com/google/go-containerregistry v0.20.2
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
