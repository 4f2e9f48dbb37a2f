/** The real server program as a child process, in a folder of its own. */
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runFlasher, startFlasher, type Ended, type StartOptions } from '../terminal/flasher.ts'
import { findPort } from '../http/ports.ts'

const programOf = (name: string) =>
  fileURLToPath(new URL(`../../../runtime/bin/${name}`, import.meta.url))

/** Everything that it writes lies in one folder, which is removed at the end. */
export async function createServerHome(as: Pick<StartOptions, 'prefix' | 'uid'> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-home-'))
  const at = (name: string) => join(dir, name)
  await mkdir(at('home'))
  if (as.uid !== undefined) {
    for (const path of [dir, at('home')]) await chown(path, as.uid, as.uid)
  }
  const env = {
    HOME: at('home'),
    XDG_CACHE_HOME: at('cache'),
    FLASHER_PATHS_STATE_DIR: at('state'),
    FLASHER_SERVER_HOST: '127.0.0.1',
  }
  const begin = (
    argv: readonly string[],
    more: Readonly<Record<string, string>>,
    program = 'flasher-web.mjs',
  ) => startFlasher(argv, { ...as, program: programOf(program), env: { ...env, ...more } })
  return {
    dir,
    at,
    env,
    text: (name: string) => readFile(at(name), 'utf8'),
    write: (name: string, text: string) => writeFile(at(name), text),
    run: (
      argv: readonly string[],
      more: Readonly<Record<string, string>> = {},
      input = '',
      program = 'flasher-web.mjs',
    ): Promise<Ended> =>
      runFlasher(argv, {
        ...as,
        program: programOf(program),
        env: { ...env, ...more },
        input,
      }),
    /** It is not waited for. */
    begin,
    /** Listening, with its address and what it said; ended at the end of the scope. */
    async start(
      argv: readonly string[] = [],
      more: Readonly<Record<string, string>> = {},
      program = 'flasher-web.mjs',
    ) {
      const port = more['FLASHER_SERVER_PORT'] ?? String(await findPort())
      const started = begin(argv, { FLASHER_SERVER_PORT: port, ...more }, program)
      let stdout = ''
      started.child.stdout?.on('data', (text: string) => {
        stdout += text
      })
      await started.saw('Pages:')
      return {
        ...started,
        url: `http://127.0.0.1:${port}`,
        stdout: () => stdout,
        async [Symbol.asyncDispose]() {
          started.child.kill('SIGTERM')
          await started.ended
        },
      }
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

/** The session's cookie as a browser sends it. */
export const login = async (url: string, password: string) => {
  const answer = await fetch(`${url}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password }),
    redirect: 'manual',
  })
  return { status: answer.status, cookie: answer.headers.getSetCookie()[0]?.split(';')[0] ?? '' }
}

/** The one that a first start prints. */
export const passwordIn = (text: string) => /^Password: (\S+)$/m.exec(text)?.[1] ?? ''
