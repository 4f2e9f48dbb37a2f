/** Current line: stands in for the parts that are still being written. */
import type { BootFiles } from '../../services/boot-files.ts'
import type { ServerLine } from '../../web/line.ts'
import type { Machine } from './rules/machine.ts'

export const NO_PAGES: Pick<
  ServerLine<Machine>,
  'match' | 'renderRow' | 'renderLogin' | 'renderError'
> = {
  match: (machines) => machines,
  renderRow: ({ mac }) => `<tr><td>${mac}</td></tr>`,
  renderLogin: () =>
    '<!doctype html><title>flasher</title><form method="post" action="/ui/login"><input type="password" name="password"><button>Log in</button></form>',
  renderError: ({ status, title }) => `<!doctype html><title>${status}</title><p>${title}</p>`,
}

export const noBootFiles = (dir: string): BootFiles => ({
  dir,
  list: () => Promise.resolve([]),
  has: () => Promise.resolve(false),
  active: () => ({ x86_64: null, arm64: null }),
  save: () => Promise.resolve(0),
})
