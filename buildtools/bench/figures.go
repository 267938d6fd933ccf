package main

import "strconv"

// counting says how a bound reads a measurement and its floor.
type counting int

const (
	plain counting = iota // the measurement itself
	added                 // what it has above the floor
	ratio                 // how many times the floor it is
)

// figure is one number with its bound.
type figure struct {
	name    string
	what    string
	unit    string
	bound   float64 // 0: told, not judged
	counts  counting
	orFloor float64 // not 0: also good when the measurement is at most so many times the floor
}

// figures are in the order they are shown. docs/performance.md says how each is taken.
var figures = []figure{
	{"B1.500.p50", "added per delta, p50 at 500/s", "µs", 250, added, 0},
	{"B1.500.p99", "added per delta, p99 at 500/s", "µs", 0, added, 0},
	{"B1.5000.p50", "added per delta, p50 at 5,000/s", "µs", 0, added, 0},
	{"B1.5000.p99", "added per delta, p99 at 5,000/s", "µs", 1000, added, 0},
	{"B2.p99", "seven phones beside a paused one, p99 of a delta", "µs", 1.2, ratio, 0},
	{"B3.p50", "plugin killed to next send accepted, p50", "ms", 0, plain, 0},
	{"B3.p99", "plugin killed to next send accepted, p99", "ms", 60, plain, 3},
	{"B4", "host killed to eight phones resynced", "ms", 500, plain, 0},
	{"B5.one", "cold start, one plugin", "ms", 80, plain, 0},
	{"B5.three", "cold start, three plugins", "ms", 200, plain, 0},
	{"B5.first", "the very first start, one plugin", "ms", 0, plain, 0},
	{"B8.memory", "memory of the host and three idle plugins, PSS", "MiB", 80, plain, 0},
	{"B8.processor", "processor time of the same", "% of one core", 0.1, plain, 0},
	{"B10.p50", "send to receipt, p50", "ms", 0, added, 0},
	{"B10.p99", "send to receipt, p99", "ms", 1, added, 0},
}

// pair is one round: the product, and the floor of the same round.
type pair struct {
	Measured float64 `json:"measured"`
	Floor    float64 `json:"floor"`
}

// result is a figure with what was measured: medians over the rounds.
type result struct {
	Name     string  `json:"name"`
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Bound    string  `json:"bound,omitempty"`
	Measured float64 `json:"measured"`
	Floor    float64 `json:"floor"`
	Value    float64 `json:"value"` // what the bound is about
	Within   bool    `json:"within"`
	Rounds   []pair  `json:"rounds"`
}

func (f figure) judge(rounds []pair) result {
	var measured, floor, value, times []float64
	for _, p := range rounds {
		v := p.Measured
		switch f.counts {
		case added:
			v -= p.Floor
		case ratio:
			v = over(p)
		}
		measured, floor = append(measured, p.Measured), append(floor, p.Floor)
		value, times = append(value, v), append(times, over(p))
	}
	r := result{
		Name: f.name, What: f.what, Unit: f.unit, Bound: f.limit(), Rounds: rounds,
		Measured: median(measured), Floor: median(floor), Value: median(value),
	}
	r.Within = len(rounds) > 0 && (f.bound == 0 || r.Value <= f.bound || f.orFloor > 0 && median(times) <= f.orFloor)
	return r
}

func over(p pair) float64 {
	if p.Floor == 0 {
		return 0
	}
	return p.Measured / p.Floor
}

// limit is the bound in words.
func (f figure) limit() string {
	if f.bound == 0 {
		return ""
	}
	n := strconv.FormatFloat(f.bound, 'g', -1, 64)
	s := "≤ " + n + " " + f.unit
	switch f.counts {
	case added:
		s += " above the floor"
	case ratio:
		s = "≤ " + n + " × the floor"
	}
	if f.orFloor > 0 {
		s += ", or ≤ " + strconv.FormatFloat(f.orFloor, 'g', -1, 64) + " × the floor"
	}
	return s
}
