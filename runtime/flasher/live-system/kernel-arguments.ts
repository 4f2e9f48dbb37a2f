/** Reads the kernel command line of this machine. */
import { readFile } from 'node:fs/promises'

/** `path`: /proc/cmdline; empty where it is missing. */
export const readKernelArguments = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch(() => '')
