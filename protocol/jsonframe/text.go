package jsonframe

// Units is the length of s in UTF-16 units, which is what peers written in JavaScript count. Bytes that are not UTF-8
// count as one.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// CutUnits gives the longest beginning of s that has at most n UTF-16 units and splits no character.
func CutUnits(s string, n int) string {
	for i, r := range s {
		n--
		if r > 0xffff {
			n--
		}
		if n < 0 {
			return s[:i]
		}
	}
	return s
}
