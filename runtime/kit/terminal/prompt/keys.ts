/** Names keys as a program acts on them: Node decodes the sequences that terminals send. */
import { PassThrough } from 'node:stream'
import { emitKeypressEvents } from 'node:readline'
import { holdKeyboard } from './keyboard.ts'

interface Keypress {
  readonly name?: string
  readonly sequence?: string
  readonly ctrl?: boolean
  readonly meta?: boolean
}

/** Other names of the same keys: some terminals send a line feed for Enter. */
const SAME: Readonly<Record<string, string>> = { enter: 'return', delete: 'backspace' }

/** Milliseconds to wait for the rest of a sequence that a serial line sends piece by piece. */
const ESCAPE_MS = 60
const ESCAPE = 0x1b

/**
 * Until it is disposed of. A key is a character as it was typed, or a name: `up`, `tab`, `return`,
 * `escape`, `backspace`, `f1`, `ctrl-c`. What was typed before does not count.
 */
export function readKeys(stdin: NodeJS.ReadStream, onKey: (key: string) => void): Disposable {
  const decoder = new PassThrough()
  emitKeypressEvents(decoder)
  decoder.on('keypress', (text: string | undefined, key: Keypress) => {
    nameKeys(text, key).forEach(onKey)
  })
  let held: NodeJS.Timeout | null = null
  // Node waits half a second for what may follow Escape.
  const release = () => {
    held = null
    onKey('escape')
  }
  const keyboard = holdKeyboard(stdin, (chunk) => {
    const lead = held === null ? [] : [Buffer.of(ESCAPE)]
    if (held !== null) clearTimeout(held)
    held = null
    if (lead.length === 0 && chunk.length === 1 && chunk[0] === ESCAPE) {
      held = setTimeout(release, ESCAPE_MS)
    } else {
      decoder.write(Buffer.concat([...lead, chunk]))
    }
  })
  void keyboard.drained
  const onEnd = () => onKey('ctrl-c')
  stdin.on('end', onEnd).on('close', onEnd)
  return {
    [Symbol.dispose]() {
      if (held !== null) clearTimeout(held)
      stdin.off('end', onEnd).off('close', onEnd)
      keyboard[Symbol.dispose]()
      decoder.destroy()
    },
  }
}

/** None for what is no key that a program acts on; Alt counts as Escape before the key. */
function nameKeys(text: string | undefined, key: Keypress): readonly string[] {
  const { name, ctrl, meta, sequence = '' } = key
  if (ctrl === true) return name === undefined ? [] : [`ctrl-${name}`]
  if (meta === true && name !== 'escape') {
    const typed = sequence.slice(1)
    return isTyped(typed) ? ['escape', typed] : []
  }
  return text !== undefined && isTyped(text) ? [text] : nameSpecial(name)
}

const nameSpecial = (name: string | undefined) => (name === undefined ? [] : [SAME[name] ?? name])

const isTyped = (text: string) => /^\P{Cc}$/u.test(text)
