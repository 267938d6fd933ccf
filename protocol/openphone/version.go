package openphone

import "fmt"

// Manifest versions this program reads, both included. A change that only adds does not raise them. One that breaks
// readers raises MaxVersion and the version of the manifest; MinVersion rises when support is dropped on purpose, after
// the release notes said so.
const (
	MinVersion = 1
	MaxVersion = 1
)

// Range is an inclusive range of manifest versions under the name of the protocol, as both sides tell each other.
type Range struct {
	Name       string `json:"name"`
	MinVersion int    `json:"min_version"`
	MaxVersion int    `json:"max_version"`
}

// Supported is the range of this program.
func Supported() Range {
	return Range{Name: "openphone-runtime-protocol", MinVersion: MinVersion, MaxVersion: MaxVersion}
}

func (r Range) has(version int) bool { return r.MinVersion <= version && version <= r.MaxVersion }

func (r Range) String() string { return fmt.Sprintf("%d to %d", r.MinVersion, r.MaxVersion) }
