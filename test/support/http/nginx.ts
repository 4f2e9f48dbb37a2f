/** nginx in the foreground, with everything that it writes in one folder. */
import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const NGINX = '/usr/sbin/nginx'

/** Takes requests once `isUp` resolves; ended at the end of the scope. */
export async function startNginx(
  folder: string,
  sites: string,
  isUp: () => Promise<unknown>,
): Promise<AsyncDisposable> {
  const conf = join(folder, 'nginx.conf')
  await mkdir(folder)
  await writeFile(conf, renderNginx(folder, sites))
  const nginx = spawn(NGINX, ['-c', conf, '-p', folder], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = new Promise<void>((resolve) => {
    nginx.once('exit', () => resolve())
  })
  await waitFor(isUp)
  return {
    async [Symbol.asyncDispose]() {
      nginx.kill('SIGTERM')
      await ended
    },
  }
}

/** What a distribution's nginx.conf has around a site. */
const renderNginx = (folder: string, sites: string) => `daemon off;
user root;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  ${sites}
}
`

async function waitFor(attempt: () => Promise<unknown>): Promise<void> {
  for (const until = performance.now() + 20_000; performance.now() < until;) {
    const isUp = await attempt().then(
      () => true,
      () => false,
    )
    if (isUp) return
    await sleep(50)
  }
  throw new Error('nginx does not answer')
}
