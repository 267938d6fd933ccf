package main

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i) // 100 … 1: not sorted
	}
	for _, c := range []struct {
		name string
		list []time.Duration
		q    float64
		want time.Duration
	}{
		{"of nothing", nil, 0.5, 0},
		{"of one", []time.Duration{7}, 0.99, 7},
		{"the middle", hundred, 0.5, 50},
		{"one in a hundred is above", hundred, 0.99, 99},
		{"the greatest of few", []time.Duration{3, 1, 2}, 0.99, 3},
		{"the greatest", hundred, 1, 100},
		{"the least", hundred, 0, 1},
	} {
		if got := percentile(c.list, c.q); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the list was sorted in place")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		name string
		list []float64
		want float64
	}{
		{"of nothing", nil, 0},
		{"odd", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 3, 100}, 3.5},
	} {
		if got := median(c.list); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name   string
		figure figure
		rounds []pair
		value  float64
		within bool
	}{
		{"plain", figure{bound: 80, counts: plain}, []pair{{79, 30}, {90, 30}, {70, 30}}, 79, true},
		{"plain and above", figure{bound: 80, counts: plain}, []pair{{81, 80}}, 81, false},
		{"exactly the bound", figure{bound: 80, counts: plain}, []pair{{80, 0}}, 80, true},
		{"added, the difference of each round", figure{bound: 1, counts: added}, []pair{{10, 9.5}, {3, 2.8}, {5, 1}}, 0.5, true},
		{"added and above", figure{bound: 1, counts: added}, []pair{{3, 1}}, 2, false},
		{"ratio", figure{bound: 1.2, counts: ratio}, []pair{{110, 100}}, 1.1, true},
		{"above the bound, but not three times the floor", figure{bound: 60, counts: plain, orFloor: 3}, []pair{{90, 31}}, 90, true},
		{"above both", figure{bound: 60, counts: plain, orFloor: 3}, []pair{{90, 29}}, 90, false},
		{"without a bound", figure{counts: plain}, []pair{{90, 1}}, 90, true},
		{"never measured", figure{bound: 1, counts: plain}, nil, 0, false},
	} {
		got := c.figure.judge(c.rounds)
		if diff := got.Value - c.value; diff > 1e-9 || diff < -1e-9 || got.Within != c.within {
			t.Errorf("%s: value %v within %v, want %v %v", c.name, got.Value, got.Within, c.value, c.within)
		}
	}
}
