/** A server of the earlier line for tests: the real services in a temporary folder, driven in process. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfiguration, openState } from '#server/earlier/assembly/state.ts'
import { createMachineServer } from '#server/earlier/serve.ts'
import { cookieOf, PASSWORD } from './assembled.ts'

export interface EarlierServerOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly now?: () => Date
}

/** `await using`: everything is closed and removed at the end, also of a test that failed. */
export async function createEarlierServer(options: EarlierServerOptions = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-earlier-'))
  const [images, boot] = [join(dir, 'images'), join(dir, 'boot')]
  await mkdir(images)
  const env = {
    FLASHER_STATE_DIR: join(dir, 'state'),
    FLASHER_IMAGE_ROOT: images,
    FLASHER_BOOT_DIR: boot,
    FLASHER_CONFIG_FILE: '/dev/null',
    ...options.env,
  }
  const messages: string[] = []
  const note = (message: string) => void messages.push(message)
  const log = { debug: note, info: note, warn: note, error: note }
  const environment = { env, systemDir: '/nonexistent', isRoot: false }
  const config = await readConfiguration(environment, { lists: {} })
  const state = await openState({ config, release: '1.2.3', log })
  const server = await createMachineServer({
    environment,
    config,
    state,
    log,
    release: '1.2.3',
    password: { user: 'flasher', check: async (given) => given === PASSWORD },
    port: () => 8080,
    ...(options.now === undefined ? {} : { now: options.now }),
  })

  // The server's own timers keep no process alive; without a socket nothing else does.
  const alive = setInterval(() => {}, 1000)

  const running = new AsyncDisposableStack()
  running.use(state)
  running.use(server)
  running.defer(() => {
    clearInterval(alive)
    server.endChannels()
  })
  /** Its folder stays. */
  const stop = () => running.disposeAsync()

  async function request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    if (!headers.has('host')) headers.set('host', 'flasher.test:8080')
    return await server.app.request(path, { ...init, headers })
  }

  return {
    app: server.app,
    routes: server.routes,
    dir,
    images,
    boot,
    log: messages,
    state,
    machines: state.machines,
    journal: state.journal,
    request,
    /** Logs in; what it returns sends the cookie along. */
    async operator() {
      const body = new URLSearchParams({ password: PASSWORD })
      const cookie = cookieOf(await request('/ui/login', { method: 'POST', body }))
      return (path: string, init: RequestInit = {}) => {
        const headers = new Headers(init.headers)
        headers.set('cookie', cookie)
        return request(path, { ...init, headers })
      }
    },
    putImage: (name: string, bytes: string | Uint8Array) => writeFile(join(images, name), bytes),
    putBootFile: (name: string, bytes: string | Uint8Array) => writeFile(join(boot, name), bytes),
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(dir, { recursive: true })
    },
  }
}
