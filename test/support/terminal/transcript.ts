/** What a serial line has said so far, as plain text, and waiting for what it will say. */
import { stripVTControlCharacters } from 'node:util'

const ESCAPE = String.fromCodePoint(27)
/** A guest that prints without end must not fill our memory. */
const KEPT_CHARACTERS = 4 * 2 ** 20
const TAIL_LINES = 20

export interface Transcript {
  add(chunk: Buffer): void
  /** No more will come: pending waits are rejected. */
  close(): void
  /** The text after the last match up to the end of the next one; rejects after the seconds. */
  waitFor(pattern: RegExp, seconds: number): Promise<string>
}

/** `where`: ends the first line of every error, so that a reader finds the whole text. */
export function createTranscript(where: string): Transcript {
  const decoder = new TextDecoder()
  let text = ''
  let seen = 0
  let pending = ''
  let isClosed = false
  let style = doNothing

  const describe = (what: string, pattern: RegExp) => {
    const tail = text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n')
    return new Error(`${what} ${pattern}; ${where}\n${tail}`)
  }

  return {
    add(chunk) {
      const raw = pending + decoder.decode(chunk, { stream: true })
      pending = findCutEscape(raw)
      text += renderPlain(raw.slice(0, raw.length - pending.length))
      const cut = Math.max(0, text.length - KEPT_CHARACTERS)
      text = text.slice(cut)
      seen = Math.max(0, seen - cut)
      style()
    },
    close() {
      isClosed = true
      style()
    },
    waitFor(pattern, seconds) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const timer = setTimeout(() => {
        reject(describe(`${seconds} seconds went by without`, pattern))
      }, seconds * 1000)
      style = () => {
        const rest = text.slice(seen)
        const found = pattern.exec(rest)
        if (found !== null) {
          const end = found.index + found[0].length
          seen += end
          resolve(rest.slice(0, end))
          style = doNothing
        } else if (isClosed) reject(describe('the machine ended without', pattern))
      }
      style()
      return promise.finally(() => {
        clearTimeout(timer)
        style = doNothing
      })
    },
  }
}

const doNothing = () => {}

const renderPlain = (raw: string) => stripVTControlCharacters(raw).replaceAll('\r', '')

/** An escape sequence at the very end whose last letter is still to come; else nothing. */
function findCutEscape(raw: string): string {
  const at = raw.lastIndexOf(ESCAPE)
  const tail = at === -1 ? '' : raw.slice(at)
  return /[a-z]/i.test(tail) ? '' : tail
}
