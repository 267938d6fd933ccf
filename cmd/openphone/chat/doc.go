// Package chat is a phone in a terminal: it speaks the conversations dialect through the phone WebSocket, like any other
// phone, and knows nothing of the host behind it. What a person sees here is what a phone could show.
//
// Run is one conversation in one goroutine, with another one that reads the socket.
package chat
