/** `/machines.csv`: the machines that a search finds, as a table whose names and labels can be read back. */
import { parseHardware } from '#engine/inventory/rules/hardware.ts'
import { downloadCsv } from '#kit/web/answers/answers.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { letOthersIn } from '#server/routes/many.ts'
import type { Site } from '#server/routes/site.ts'
import type { Contact } from '#server/routes/transition.ts'
import { MACHINES_CSV_HEAD, renderMachineCsv } from '../rules/table/machine-table.ts'
import type { Machine } from '../rules/machine.ts'

interface ShownMachine {
  readonly image: { readonly name: string } | null
  readonly view: { readonly state: string }
}

const STEP = 50

/** `view`: what is shown of a machine to a request. */
export function machineTableRoutes(
  site: Site<Machine>,
  view: (machine: Machine, contact: Contact) => ShownMachine,
): readonly Route[] {
  async function* render(found: readonly Machine[], contact: Contact) {
    let part = MACHINES_CSV_HEAD
    for (const [at, machine] of found.entries()) {
      const posted = await site.machines.findHardware(machine.mac)
      const serial = posted === null ? null : (parseHardware(posted.json)?.serial ?? null)
      const { image, view: shown } = view(machine, contact)
      part += renderMachineCsv({ machine, serial, image: image?.name ?? null, state: shown.state })
      await letOthersIn(at, STEP)
      if (at % STEP < STEP - 1) continue
      yield part
      part = ''
    }
    yield part
  }

  return [
    {
      method: 'GET',
      path: '/machines.csv',
      access: 'read',
      doc: {
        summary: 'Machines as CSV, of which names, labels, racks and slots can be read back',
        query: {
          q: 'Only those that the search of the machines page finds',
          sort: 'A column of the machines page, - before it: the other way round',
        },
        answers: { 200: { type: 'string', contentMediaType: 'text/csv' } },
      },
      async handle(event) {
        const found = site.views.match(await site.machines.list(), event.url.searchParams)
        return downloadCsv(render(found, site.contact(event)), 'machines.csv')
      },
    },
  ]
}
