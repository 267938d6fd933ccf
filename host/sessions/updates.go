package sessions

import "sync"

// subscription is one subscriber. mu is held while fn runs, so that cancel can wait for it.
type subscription struct {
	mu        sync.Mutex
	fn        func(Update)
	cancelled bool
}

// delivery is an update with who was there when it happened.
type delivery struct {
	update Update
	to     []*subscription
}

// Subscribe delivers every update from now on. fn must not call cancel, and must not block.
func (c *Conversations) Subscribe(fn func(Update)) (cancel func()) {
	s := &subscription{fn: fn}
	c.mu.Lock()
	c.subs = append(append([]*subscription(nil), c.subs...), s)
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		var rest []*subscription
		for _, x := range c.subs {
			if x != s {
				rest = append(rest, x)
			}
		}
		c.subs = rest
		c.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancelled = true
	}
}

// publish puts an update in line; flush delivers it. mu is held, which is what gives updates their one order.
func (c *Conversations) publish(u Update) {
	if len(c.subs) > 0 {
		c.outbox = append(c.outbox, delivery{u, c.subs})
	}
}

// flush delivers what is in line, unless somebody is delivering already and will take it along. mu is not held.
func (c *Conversations) flush() {
	for {
		c.mu.Lock()
		if c.delivering || len(c.outbox) == 0 {
			c.mu.Unlock()
			return
		}
		c.delivering = true
		batch := c.outbox
		c.outbox = nil
		c.mu.Unlock()
		for _, d := range batch {
			for _, s := range d.to {
				s.deliver(d.update)
			}
		}
		c.mu.Lock()
		c.delivering = false
		c.mu.Unlock()
	}
}

func (s *subscription) deliver(u Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cancelled {
		s.fn(u)
	}
}
