/** Standard input as a Source: read once, in order, of unknown size. */
import { addAbortSignal, type Readable } from 'node:stream'
import { Fault } from '#kit/foundation/fault.ts'
import { brokenAt, readingCancelled } from '#kit/net/rules/source-fault.ts'
import type { Source } from './source.ts'

const NAME = '-'

/** Throws a Fault `misuse` where a person sits at standard input. */
export function openStdinSource(input: Readable, signal?: AbortSignal): Source {
  if ('isTTY' in input && input.isTTY === true) {
    throw new Fault('misuse', 'standard input is a terminal: pipe an image into it, or name a file')
  }
  if (signal !== undefined) addAbortSignal(signal, input)
  let isTaken = false

  async function* stream(from = 0) {
    if (isTaken || from > 0) {
      throw new Fault('misuse', 'standard input can be read once only, from its start')
    }
    isTaken = true
    let at = 0
    try {
      for await (const chunk of input) {
        if (!(chunk instanceof Buffer)) throw new TypeError('standard input is not read as bytes')
        at += chunk.length
        yield chunk
      }
    } catch (cause) {
      if (signal?.aborted) throw readingCancelled('standard input')
      throw brokenAt({ name: NAME, at, sizeBytes: null }, 'standard input broke', { cause })
    }
  }

  return {
    name: NAME,
    fileName: NAME,
    path: null,
    url: null,
    sizeBytes: null,
    readAt: null,
    stream,
    async [Symbol.asyncDispose]() {
      input.destroy()
    },
  }
}
