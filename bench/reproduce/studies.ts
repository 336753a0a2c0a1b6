/** Every study that `npm run reproduce` knows. */
import { aiSearchPlannerStudy } from "./studies/ai-search-planner.ts";
import { cosearchStudy } from "./studies/cosearch.ts";
import { desaStudy } from "./studies/desa.ts";
import { searchR1Study } from "./studies/search-r1.ts";
import type { Study } from "./study.ts";

export const studies: readonly Study[] = [searchR1Study, desaStudy, cosearchStudy, aiSearchPlannerStudy];
