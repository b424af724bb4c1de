// Package method is the table of the nine methods of agent threads (threads §4): names, fields and
// their rules, roles and schemas. All surfaces are made from it, and none adds a rule of its own.
package method
