/** What the buttons and the form of a machine's power do, as requests of the API. */
import type { Bmc } from '../../../../fleet/power/rules/bmc.ts'
import type { PowerView } from '../../../power/rules/power-request.ts'
import { blank, type CurlCall } from '../../../pages/curl-block.ts'
import { PAGES } from '../../../texts/texts.ts'
import type { BmcFormContent } from './bmc-form.ts'
import { isCut, listPowerChoices, POWER_CHOICES, type PowerChoice } from './power-buttons.ts'

const t = PAGES.power

export const callPower = (mac: string, choice: PowerChoice): CurlCall => ({
  method: 'POST',
  path: `/machines/${mac}/power`,
  body: POWER_CHOICES[choice],
  scope: 'power',
})

/** Only buttons without a question. */
export const listPowerCalls = (
  mac: string,
  bmc: Bmc,
  { state, certificate }: PowerView,
): readonly CurlCall[] => [
  ...listPowerChoices(bmc, state)
    .filter((choice) => !isCut(choice))
    .map((choice) => ({ ...callPower(mac, choice), label: t.buttons[choice] })),
  ...(certificate === null
    ? []
    : [
        {
          method: 'DELETE',
          path: `/machines/${mac}/power/certificate`,
          scope: 'admin',
          label: t.facts.unpin,
        } as const,
      ]),
]

/** Without a credential, the present one stays. */
export const callBmc = (mac: string, { entry, suggested }: BmcFormContent): CurlCall => ({
  method: 'PUT',
  path: `/machines/${mac}/power`,
  body: entry === null ? suggest(suggested) : entry.bmc,
  scope: 'admin',
})

const suggest = (address: string | null) => ({
  way: address === null ? 'redfish' : 'ipmi',
  address: address ?? blank('address'),
  credential: { user: blank('user'), password: blank('password') },
})
