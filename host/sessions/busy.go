package sessions

// Busy counts what an end of the host would touch: open runs, prompts on their way to their receipt included, and
// interactions that wait for a person.
func (c *Conversations) Busy() (runs, interactions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs = len(c.runs)
	for _, conv := range c.byKey {
		if conv.prepare != nil {
			runs++
		}
	}
	return runs, len(c.book.List("", true)) + len(c.book.List("", false))
}
