/** A real terminal for a program, driven key by key: tmux, on a socket of its own. */
import { execFile } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

export interface TerminalOptions {
  readonly columns?: number
  readonly rows?: number
  readonly env?: Readonly<Record<string, string>>
}

export interface Terminal extends AsyncDisposable {
  /** What is on the screen, line by line, blanks at the ends left out. */
  screen(): Promise<readonly string[]>
  /** The same with its colours as escape sequences. */
  painted(): Promise<string>
  /** Everything since the start, what was scrolled away included. */
  history(): Promise<string>
  /** By tmux's names: `Enter`, `Up`, `C-c`; anything else is typed. */
  press(...keys: readonly string[]): Promise<void>
  /** Everything that comes out of the program goes there too, from now on. */
  pipeTo(path: string): Promise<void>
  resize(columns: number, rows: number): Promise<void>
  /** The screen as soon as it shows this; rejects with what it showed instead. */
  waitFor(pattern: RegExp | string): Promise<readonly string[]>
}

const run = promisify(execFile)
let count = 0

/** What the program's end looks like on the screen. */
export const EXITED = 'exit code '
const PATIENCE_MS = 20_000
const LOOK_MS = 40

export async function openTerminal(
  argv: readonly string[],
  { columns = 80, rows = 25, env = {} }: TerminalOptions = {},
): Promise<Terminal> {
  count += 1
  const socket = `flasher-test-${process.pid}-${count}`
  const tmux = async (...words: readonly string[]) => {
    const { stdout } = await run('tmux', ['-L', socket, ...words])
    return stdout
  }
  const settings = Object.entries({ LANG: 'C.UTF-8', ...env }).map(([name, value]) =>
    quote(`${name}=${value}`),
  )
  // A person's terminal is not CI's, wherever the test runs.
  const command = `env -u CI ${settings.join(' ')} ${argv.map(quote).join(' ')}`
  const size = ['-x', `${columns}`, '-y', `${rows}`]
  const whole = `${command}; code=$?; echo; echo ${quote(EXITED)}$code; sleep 1000`
  await tmux('-f', '/dev/null', 'new-session', '-d', ...size, whole)

  const screen = async () => (await tmux('capture-pane', '-p')).split('\n').map((l) => l.trimEnd())
  return {
    screen,
    painted: () => tmux('capture-pane', '-p', '-e'),
    history: () => tmux('capture-pane', '-p', '-S', '-'),
    press: async (...keys) => void (await tmux('send-keys', ...keys)),
    pipeTo: async (path) => void (await tmux('pipe-pane', '-o', `exec cat > ${quote(path)}`)),
    resize: async (x, y) => void (await tmux('resize-window', '-x', `${x}`, '-y', `${y}`)),
    async waitFor(pattern) {
      let seen: readonly string[] = []
      for (let waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
        seen = await screen()
        const text = seen.join('\n')
        if (typeof pattern === 'string' ? text.includes(pattern) : pattern.test(text)) return seen
        await pause(LOOK_MS)
      }
      throw new Error(`never saw ${pattern}; the screen shows:\n${seen.join('\n')}`)
    },
    [Symbol.asyncDispose]: async () => void (await tmux('kill-server').catch(() => '')),
  }
}

const quote = (word: string) => `'${word.replaceAll("'", String.raw`'\''`)}'`
