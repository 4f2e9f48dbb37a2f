/** The real server with a live system to boot, for machines of a virtual network; and what it was asked. */
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { text } from '#kit/web/answers/answers.ts'
import { renderAutoexec } from '#fleet/boot/rules/boot-script.ts'
import { openDebianImage } from '../disk/debian-image.ts'
import { startIpxe, type IpxeOptions } from './ipxe.ts'
import { entryOf, MAC, REF } from '../server/machine-fixture.ts'
import { asJson, createTestServer, listen } from '../server/server.ts'

export const KERNEL = 'flasher-netboot-pc-x86_64-v1.2.3.vmlinuz'
export const INITRD = 'flasher-netboot-pc-x86_64-v1.2.3.initrd'

/** The live system is Debian's kernel, and something for an initrd; its squashfs is not there. */
export async function startStation(env: Readonly<Record<string, string>> = {}) {
  await using undo = new AsyncDisposableStack()
  const server = undo.use(
    await createTestServer({
      env,
      catalog: [entryOf(REF)],
      routes: (site) => [
        {
          method: 'GET',
          path: '/autoexec.ipxe',
          access: 'open',
          handle: (event) => {
            const { baseUrl } = site.contact(event)
            return text(renderAutoexec(baseUrl, site.otherServers?.(baseUrl)))
          },
        },
      ],
    }),
  )
  const socket = undo.use(await listen(server))
  const { kernel } = await openDebianImage()
  const kernelPath = join(server.boot, KERNEL)
  await copyFile(kernel, kernelPath)
  await writeFile(join(server.boot, INITRD), 'no cpio archive at all')
  const requests: string[] = []
  socket.http.on('request', ({ method, url }) => {
    requests.push(`${method} ${decodeURIComponent(url ?? '')}`)
  })
  const held = undo.move()
  return {
    ...server,
    port: socket.port,
    kernelPath,
    restoreKernel: () => copyFile(kernel, kernelPath),
    /** `GET /boot/…` and all the others, in their order, decoded. */
    requests,
    async put(body: unknown) {
      const ask = await server.operator()
      const answer = await ask(`/machines/${MAC}`, asJson(body, 'PUT'))
      assert.is(answer.status, 200)
    },
    boot: (machine: Omit<IpxeOptions, 'mac' | 'port'> & { readonly port?: number }) =>
      startIpxe({ mac: MAC, port: socket.port, ...machine }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}
export type Station = Awaited<ReturnType<typeof startStation>>
