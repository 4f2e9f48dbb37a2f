/** Finds the terminal that this program runs on. */
import { readlink } from 'node:fs/promises'

/** `/dev/tty1`; empty where it is unknown. `path`: the link of our standard input. */
export const readOwnTerminal = (path: string): Promise<string> => readlink(path).catch(() => '')
