/** Boxes that boot from a server: what they ask and post, and what they are made of. */

const digest = (head: string) => head.padEnd(64, 'b')
const image = (name: string, arch: string | null, size_bytes: number, sha: string) => ({
  name,
  src: `https://images.invalid/${name}`,
  resolved_src: `https://images.invalid/${name}`,
  format: /\.(img(?:\.\w+)?|qcow2|tar\.gz)$/.exec(name)?.[1] ?? '',
  arch,
  sha256: digest(sha),
  size_bytes,
  description: null,
})

/** What the catalog holds; the last one is no disk image. */
export const IMAGES = [
  image('debian-13-generic-amd64.img.zst', 'x86_64', 412_334_080, 'a1b2c3d4e5f6'),
  image('debian-13-generic-arm64.img.zst', 'arm64', 398_458_880, '0f9e8d7c6b5a'),
  image('fedora-43-server.qcow2', 'x86_64', 1_288_490_188, '77aa88bb99cc'),
  image('ubuntu-26.04-minimal.img.xz', 'x86_64', 289_406_976, '5566778899aa'),
  image('appliance-2.4.1.img', 'x86_64', 8_589_934_592, 'ccddeeff0011'),
  image('tools-bundle.tar.gz', null, 52_428_800, '112233445566'),
] as const

const disk = (path: string, model: string, serial: string, tran: string, size_bytes: number) => ({
  path,
  size: `${(size_bytes / 2 ** 30).toFixed(1)}G`,
  size_bytes,
  vendor: null,
  model,
  serial,
  tran,
  removable: tran === 'usb',
  readonly: false,
})

/** The serial number of the first disk of the machine with that number. */
export const serialOf = (box: number): string => `S5GXNX0T${100_000 + box}`

export const disksOf = (box: number) => [
  disk('/dev/nvme0n1', 'Samsung SSD 980 500GB', serialOf(box), 'nvme', 500_107_862_016),
  disk('/dev/sda', 'ST4000NM0035-1V4107', `ZC1${40_000 + box}`, 'sata', 4_000_787_030_016),
  disk('/dev/sdb', 'SanDisk Ultra Fit', `4C53100${12_000 + box}`, 'usb', 30_752_636_928),
]

const LSHW = {
  id: 'box',
  class: 'system',
  vendor: 'Supermicro',
  product: 'SYS-5019D-FN8TP',
  serial: 'S3112341',
  children: [
    {
      id: 'firmware',
      class: 'memory',
      vendor: 'American Megatrends',
      version: '1.4',
      date: '09/11/2024',
    },
    { id: 'memory', class: 'memory', size: 68_719_476_736 },
    {
      id: 'cpu:0',
      class: 'processor',
      product: 'Intel(R) Xeon(R) D-2146NT CPU @ 2.30GHz',
      configuration: { cores: '8' },
    },
    {
      id: 'network:0',
      class: 'network',
      product: 'Ethernet Connection X722 for 10GBASE-T',
      logicalname: 'eno1',
      serial: '52:54:00:12:34:56',
    },
  ],
}

export const macOf = (box: number): string => `52:54:00:a1:00:${box.toString(16).padStart(2, '0')}`

/** A report of progress that counts nothing yet. */
export const UNCOUNTED = {
  bytes_read: 0,
  bytes_written: 0,
  total_bytes: null,
  rate: null,
  eta_seconds: null,
}

const pxe = (box: number) => `/pxe/${macOf(box)}`

export function createBoxes(url: string) {
  const post = (path: string, body?: unknown) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })

  return {
    async waitForImages(count: number) {
      for (let tries = 0; tries < 3000; tries += 1) {
        const images: unknown = await (await fetch(`${url}/images`)).json()
        if (Array.isArray(images) && images.length === count) return
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      throw new Error('the catalog never came')
    },
    /** Its first contact, or a later one; returns the script that it gets. */
    boot: async (box: number) => await (await fetch(`${url}${pxe(box)}?buildarch=x86_64`)).text(),
    tellDisks: (box: number, disks: readonly unknown[] = disksOf(box)) =>
      post(`${pxe(box)}/inventory`, { disks, lshw: LSHW }),
    fetchKernel: async (box: number) => {
      const name = 'flasher-netboot-pc-x86_64-v1.4.0.vmlinuz'
      await (await fetch(`${url}/boot/${name}?mac=${macOf(box)}`)).arrayBuffer()
    },
    plan: async (box: number) => await (await fetch(`${url}${pxe(box)}/plan`)).json(),
    /** How far a flash is; `fields` beside the counters, which are 0 unless said. */
    async report(box: number, fields: object) {
      const { status } = await post(`${pxe(box)}/progress`, { ...UNCOUNTED, ...fields })
      if (status !== 204) throw new Error(`progress of box ${box}: ${status}`)
    },
    sendLog: (box: number, run: string, text: string) =>
      fetch(`${url}${pxe(box)}/log?run=${run}`, { method: 'POST', body: text }),
    done: (box: number) => post(`${pxe(box)}/done`),
    fail: (box: number, reason: string) => post(`${pxe(box)}/status`, { status: 'failed', reason }),
  }
}
