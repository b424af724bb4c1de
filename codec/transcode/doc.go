// Package transcode turns JSON text into MessagePack and back, without a tree in between.
package transcode
