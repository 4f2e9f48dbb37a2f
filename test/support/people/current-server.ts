/** A server of the current line for tests, with all of its routes and pages: the real services in a temporary folder, driven in process. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { createPasswords } from '../../../runtime/fleet/access/passwords.ts'
import {
  decideFolders,
  readConfiguration,
} from '../../../runtime/server/current/assembly/configuration.ts'
import { openState } from '../../../runtime/server/current/assembly/state.ts'
import { COMMANDS } from '../../../runtime/server/current/rules/commands.ts'
import { createMachineServer } from '../../../runtime/server/current/server.ts'
import type { Role } from '../../../runtime/kit/web/answers/rules/rights.ts'
import { cookieOf, PASSWORD } from '../server/server.ts'

/** The password that `addPerson` gives. */
export const PERSON_PASSWORD = 'a password of their own'

/** `await using`: everything is closed and removed at the end, also of a test that failed. */
export async function createCurrentServer(env: Readonly<Record<string, string>> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-current-'))
  const messages: string[] = []
  const note = (message: string) => void messages.push(message)
  const log = { debug: note, info: note, warn: note, error: note }
  const environment = {
    env: {
      FLASHER_PATHS_STATE_DIR: join(dir, 'state'),
      FLASHER_CONFIG_FILE: '/dev/null',
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      ...env,
    },
    argv: [],
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: new AbortController().signal,
    onHangup: () => undefined,
    listen: () => Promise.reject(new Error('nothing listens here')),
    systemDir: '/nonexistent',
    isRoot: false,
  }
  const config = await readConfiguration(environment, {
    lists: {},
    values: {},
    positionals: [],
    switches: new Set<string>(),
    command: COMMANDS.serve,
  })
  const state = await openState({ config, release: '1.2.3', visit: false, log })
  const passwords = createPasswords({
    path: decideFolders(config).password,
    configured: () => config.current().admin,
  })
  const server = await createMachineServer({
    environment,
    config,
    state,
    log,
    release: '1.2.3',
    passwords,
    cacheBeside: null,
    bootFiles: null,
  })

  // The server's own timers keep no process alive; without a socket nothing else does.
  const alive = setInterval(() => {}, 1000)

  async function request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    if (!headers.has('host')) headers.set('host', 'flasher.test:8080')
    return await server.app.request(path, { ...init, headers })
  }

  const withCookie =
    (cookie: string) =>
    (path: string, init: RequestInit = {}) => {
      const headers = new Headers(init.headers)
      headers.set('cookie', cookie)
      return request(path, { ...init, headers })
    }

  async function logIn(fields: Readonly<Record<string, string>>) {
    const answer = await request('/ui/login', { method: 'POST', body: new URLSearchParams(fields) })
    return { status: answer.status, cookie: cookieOf(answer), text: await answer.text() }
  }

  return {
    dir,
    state,
    routes: server.routes,
    log: messages,
    request,
    withCookie,
    logIn,
    /** Logs in with the password alone; what it returns sends the cookie along. */
    operator: async () => withCookie((await logIn({ password: PASSWORD })).cookie),
    async [Symbol.asyncDispose]() {
      clearInterval(alive)
      server.endChannels()
      await server[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await rm(dir, { recursive: true })
    },
  }
}

export type CurrentServer = Awaited<ReturnType<typeof createCurrentServer>>

/** The body of a form. */
export const asForm = (fields: Readonly<Record<string, string>>): RequestInit => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

/** Adds a person as the administrator does, with the labels of their scope; resolves to what they ask with. */
export async function addPerson(
  server: CurrentServer,
  name: string,
  role: Role,
  labels: readonly string[] = [],
) {
  const operator = await server.operator()
  const fields = { name, role, labels: labels.join(', '), password: PERSON_PASSWORD }
  const added = await operator('/ui/people', asForm(fields))
  assert.match(added.headers.get('location') ?? '', 'done=added')
  const { status, cookie } = await server.logIn({ username: name, password: PERSON_PASSWORD })
  assert.is(status, 303)
  return server.withCookie(cookie)
}
