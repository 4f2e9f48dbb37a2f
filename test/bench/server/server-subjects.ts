/** What is compared, each as a process of its own: the server, the two yardsticks, and nginx. */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { findPort } from '#test/support/http/ports.ts'
import type { Bare } from './server-bare.ts'
import { PASSWORD, type Folder } from './server-fixture.ts'

export interface Subject extends AsyncDisposable {
  readonly name: string
  readonly port: number
  readonly pid: number
}

const PATIENCE_MS = 30_000

/** `flasher-web` as users start it, on a state directory that is filled already; of this checkout, or another. */
export async function startFlasher(
  folder: Folder,
  settings: Readonly<Record<string, string>> = {},
  checkout: string | null = null,
): Promise<Subject> {
  const port = await findPort()
  const child = spawn(process.execPath, [`${checkout ?? '.'}/runtime/bin/flasher-web.mjs`], {
    stdio: ['ignore', 'ignore', process.env['FLASHER_DEBUG'] === '1' ? 'inherit' : 'ignore'],
    env: {
      ...process.env,
      FLASHER_LOG_LEVEL: 'warn',
      FLASHER_SERVER_HOST: '127.0.0.1',
      FLASHER_SERVER_PORT: String(port),
      FLASHER_PATHS_STATE_DIR: folder.path,
      FLASHER_WITHCACHE_URL: folder.cacheUrl,
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      ...settings,
    },
  })
  return await awaitUp(checkout === null ? 'flasher' : `flasher of ${checkout}`, child, port)
}

export async function startBare(bare: Bare): Promise<Subject> {
  const child = fork(join(import.meta.dirname, 'server-bare.ts'))
  child.send(bare)
  const [port]: unknown[] = await once(child, 'message')
  const name = bare.kind === 'h3' ? 'bare h3' : 'bare node:http'
  return await awaitUp(name, child, Number(port))
}

/** One worker, as the others have. Serves the folder below /boot/. */
export async function startNginx(bootDir: string, sendfile: 'on' | 'off'): Promise<Subject> {
  const port = await findPort()
  const dir = await mkdtemp(join(tmpdir(), 'flasher-bench-nginx-'))
  const path = join(dir, 'nginx.conf')
  await writeFile(path, renderNginx(dir, bootDir, port, sendfile))
  const child = spawn('nginx', ['-c', path, '-p', dir], { stdio: ['ignore', 'inherit', 'ignore'] })
  const subject = await awaitUp(`nginx, sendfile ${sendfile}`, child, port)
  return {
    ...subject,
    async [Symbol.asyncDispose]() {
      await subject[Symbol.asyncDispose]()
      await rm(dir, { recursive: true })
    },
  }
}

const renderNginx = (dir: string, bootDir: string, port: number, sendfile: string) => `
daemon off;
${process.geteuid?.() === 0 ? 'user root;' : ''}
worker_processes 1;
pid ${dir}/nginx.pid;
error_log ${dir}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile ${sendfile};
  tcp_nopush ${sendfile};
  client_body_temp_path ${dir}; proxy_temp_path ${dir}; fastcgi_temp_path ${dir};
  uwsgi_temp_path ${dir}; scgi_temp_path ${dir};
  server {
    listen 127.0.0.1:${port};
    location /boot/ { alias ${bootDir}/; }
  }
}
`

async function awaitUp(name: string, child: ChildProcess, port: number): Promise<Subject> {
  const gone = once(child, 'close')
  const isUp = async (since: number): Promise<boolean> => {
    if (await canConnect(port)) return true
    if (child.exitCode !== null || performance.now() - since > PATIENCE_MS) return false
    await pause(50)
    return isUp(since)
  }
  async function end() {
    child.kill('SIGTERM')
    await gone
  }
  if (!(await isUp(performance.now()))) {
    await end()
    throw new Error(`${name} does not answer on port ${port}`)
  }
  return { name, port, pid: child.pid ?? 0, [Symbol.asyncDispose]: end }
}

function canConnect(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' })
  return new Promise((resolve) => {
    // A port in use for outgoing connections may meet itself where nobody listens yet.
    socket.once('connect', () => resolve(socket.localPort !== port))
    socket.once('error', () => resolve(false))
  }).then((can) => {
    socket.destroy()
    return can === true
  })
}
