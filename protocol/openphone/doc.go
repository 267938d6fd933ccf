// Package openphone reads the manifests of the OpenPhone protocol: which commands a phone offers to a runtime, which
// events pass between them, which capabilities there are, and what their objects look like. Load is the only way from
// JSON to a Manifest; Validate says everything that is wrong with manifests before they are published; Breaking compares
// two releases.
//
// It decides nothing: who may call what is a matter of policy, and where a command runs is a matter of endpoints. It
// knows no transport and no host. Its only I/O is LoadFile. Manifests do not change once loaded, so that everything here
// is safe for concurrent use.
package openphone
