package phone

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// originAllowed applies the Origin rule: none at all (a native client), or exactly the endpoint that is being called
// (some platforms send it by themselves). Everything else is a foreign page in a browser.
func originAllowed(r *http.Request) bool {
	origins, given := r.Header["Origin"]
	if !given {
		return true
	}
	if len(origins) != 1 || origins[0] == "" || r.Host == "" {
		return false
	}
	if strings.ContainsAny(origins[0], "?#") {
		return false
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.User != nil || u.Opaque != "" || u.Host == "" || u.Path != "" && u.Path != "/" {
		return false
	}
	var port string
	switch u.Scheme {
	case "http":
		port = "80"
	case "https":
		port = "443"
	default:
		return false
	}
	return endpoint(u.Host, port) == endpoint(r.Host, port)
}

// endpoint is a host and port in one spelling.
func endpoint(hostport, defaultPort string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || port == "" {
		host, port = strings.TrimSuffix(hostport, ":"), defaultPort
	}
	return strings.ToLower(strings.Trim(host, "[]")) + " " + port
}
