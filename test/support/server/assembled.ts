/** The program's own assembly in a temporary folder, driven in process. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPasswords, type Passwords } from '#fleet/access/passwords.ts'
import type { Proofs } from '#fleet/proof/proofs.ts'
import { decideFolders, readConfiguration } from '#server/current/assembly/configuration.ts'
import type { openBootFiles } from '#server/current/assembly/netboot.ts'
import { openPower, openProofs } from '#server/current/power/power.ts'
import { openState } from '#server/current/assembly/state.ts'
import { COMMANDS } from '#server/current/commands/rules/commands.ts'
import { createMachineServer, type AssemblyOptions } from '#server/current/server.ts'

export const PASSWORD = 'correct horse ünicode'

export interface AssembledOptions {
  /** What differs from the defaults. */
  readonly env?: Readonly<Record<string, string>>
  readonly checkPassword?: Passwords['check']
  /** Absent: the boot directory, as it is looked at by itself. */
  readonly openBoot?: typeof openBootFiles
  /** A cache service beside the server; absent: there is none. */
  readonly cacheBeside?: string | null
  /** What controls the power of machines at another pace. */
  readonly power?: NonNullable<Parameters<typeof openPower>[0]['limits']>
  /** What is seen of machines from outside. */
  readonly witnesses?: NonNullable<Parameters<typeof openProofs>[0]['witnesses']>
  readonly assembly?: Omit<AssemblyOptions, 'openPower' | 'openProofs'>
}

/** `await using`: everything is closed and removed at the end, also of a test that failed. */
export async function openAssembled(options: AssembledOptions = {}) {
  await using undo = new AsyncDisposableStack()
  // The server's own timers keep no process alive; without a socket nothing else does.
  const alive = setInterval(() => {}, 1000)
  undo.defer(() => clearInterval(alive))
  const dir = await mkdtemp(join(tmpdir(), 'flasher-web-'))
  undo.defer(() => rm(dir, { recursive: true }))
  const messages: string[] = []
  const note = (message: string) => void messages.push(message)
  const log = { debug: note, info: note, warn: note, error: note }
  const env: Record<string, string> = {
    FLASHER_PATHS_STATE_DIR: dir,
    FLASHER_CONFIG_FILE: '/dev/null',
    FLASHER_ADMIN_PASSWORD: PASSWORD,
    ...options.env,
  }
  const environment = createEnvironment(env)
  const config = await readConfiguration(environment, NO_ARGUMENTS)
  const { assembly = {}, witnesses, power: limits } = options
  const { clock } = assembly
  const opening = { config, release: '1.2.3', visit: false, log }
  const state = undo.use(await openState(clock === undefined ? opening : { ...opening, clock }))
  const bootFiles = undo.use((await options.openBoot?.({ config, log })) ?? null)
  const made: { proofs?: Proofs; power?: Awaited<ReturnType<typeof openPower>> } = {}
  const server = undo.use(
    await createMachineServer({
      environment,
      config,
      state,
      log,
      release: '1.2.3',
      passwords: createPlainPasswords(decideFolders(config).password, options.checkPassword),
      cacheBeside: options.cacheBeside ?? null,
      bootFiles,
      options: {
        ...assembly,
        openProofs(given) {
          made.proofs = openProofs(witnesses === undefined ? given : { ...given, witnesses })
          return made.proofs
        },
        async openPower(given) {
          made.power = await openPower(limits === undefined ? given : { ...given, limits })
          return made.power
        },
      },
    }),
  )
  undo.defer(server.endChannels)
  const { proofs, power } = made
  if (proofs === undefined || power === undefined) throw new Error('the assembly opens both')

  /** `ip`: where it comes from; absent: nobody knows. */
  async function request(
    path: string,
    { ip, ...init }: RequestInit & { readonly ip?: string } = {},
  ): Promise<Response> {
    const headers = new Headers(init.headers)
    if (!headers.has('host')) headers.set('host', 'flasher.test:8080')
    if (ip === undefined) return await server.app.request(path, { ...init, headers })
    const sent = new Request(new URL(path, 'http://flasher.test:8080'), { ...init, headers })
    return await server.app.request(Object.defineProperty(sent, 'ip', { value: ip }))
  }

  const withCookie =
    (cookie: string) =>
    async (path: string, init: RequestInit = {}): Promise<Response> => {
      const headers = new Headers(init.headers)
      headers.set('cookie', cookie)
      return await request(path, { ...init, headers })
    }

  async function logIn(fields: Readonly<Record<string, string>>) {
    const answer = await request('/ui/login', { method: 'POST', body: new URLSearchParams(fields) })
    return { status: answer.status, cookie: cookieOf(answer), text: await answer.text() }
  }

  const boot = join(dir, 'boot')
  const { changes, journal, runs, batches, machines } = state
  const held = undo.move()
  return {
    app: server.app,
    routes: server.routes,
    listeners: server.listeners,
    /** Ends the live channels. */
    close: server.endChannels,
    dir,
    boot,
    log: messages,
    state,
    changes,
    journal,
    runs,
    proofs,
    power,
    batches,
    machines,
    /** What the environment says from now on. */
    set(variables: Readonly<Record<string, string>>): void {
      Object.assign(env, variables)
      config.readSaved()
    },
    request,
    withCookie,
    logIn,
    /** Logs in with the password alone; what it returns sends the cookie along. */
    operator: async () => withCookie((await logIn({ password: PASSWORD })).cookie),
    putBootFile: (name: string, bytes: string | Uint8Array) => writeFile(join(boot, name), bytes),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

export type AssembledServer = Awaited<ReturnType<typeof openAssembled>>

/** A hash takes a tenth of a second at each login. */
function createPlainPasswords(path: string, check?: Passwords['check']): Passwords {
  let password = PASSWORD
  const passwords = createPasswords({ path, configured: () => ({ password, password_hash: '' }) })
  return {
    ...passwords,
    ...(check === undefined ? {} : { check }),
    async set(given) {
      password = given
    },
  }
}

/** What a process hands to the program, where nothing listens. */
const createEnvironment = (env: Readonly<Record<string, string>>) => ({
  env,
  argv: [],
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: new AbortController().signal,
  onHangup: () => undefined,
  listen: () => Promise.reject(new Error('nothing listens here')),
  systemDir: '/nonexistent',
  isRoot: false,
})

const NO_ARGUMENTS = {
  lists: {},
  values: {},
  positionals: [],
  switches: new Set<string>(),
  command: COMMANDS.serve,
}

/** `name=value` of the session cookie that an answer sets; empty: none. */
export const cookieOf = (answer: Response): string =>
  answer.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0] ?? '')
    .find((pair) => pair.startsWith('flasher-token=')) ?? ''
