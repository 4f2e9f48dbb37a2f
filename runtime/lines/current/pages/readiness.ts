/** What network boot needs, and whether it is there. */
import type { Desk } from './desk.ts'

export interface ReadinessRow {
  readonly ok: boolean
  readonly title: string
  /** What is true, in a sentence. */
  readonly text: string
  /** The page where it is put right. */
  readonly href: string
}

export async function listReadiness({ site }: Desk): Promise<readonly ReadinessRow[]> {
  const { x86_64, arm64 } = site.bootFiles.active()
  const { entries, error } = site.catalog.snapshot()
  const sets = [x86_64, arm64].filter((set) => set !== null)
  return [
    {
      ok: sets.length > 0,
      title: 'Live system',
      text:
        sets.length > 0
          ? `Version ${sets.map(({ version, arch }) => `${version ?? 'uploaded'} (${arch})`).join(', ')} is served.`
          : 'None is there yet: machines can only boot their own disks.',
      href: '/ui/netboot',
    },
    {
      ok: entries.length > 0,
      title: 'Images',
      text:
        entries.length > 0
          ? `The catalog holds ${entries.length}.`
          : `The catalog is empty${error === null ? '' : `: ${error}`}.`,
      href: '/ui/settings#ramboot',
    },
  ]
}
