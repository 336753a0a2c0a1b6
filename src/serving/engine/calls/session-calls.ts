/** Calls about the server, sessions and futures. */
import type { Calls } from "./call.ts";

export const sessionCalls = {
  "client/config": async () => ({ pjwt_auth_enabled: false }),

  create_session: async (_body, { service, arrival }) => {
    const session_id = service.once(
      arrival,
      () => service.sessions.add(`session_${service.parts.newId()}`).id,
    );
    return {
      type: "create_session",
      session_id,
      info_message: null,
      warning_message: null,
      error_message: null,
    };
  },

  session_heartbeat: async ({ session_id }, { service }) => {
    service.sessions.hear(session_id);
    return { type: "session_heartbeat" };
  },

  telemetry: async () => ({ status: "accepted" }),

  retrieve_future: async ({ request_id }, { service, signal }) => {
    const { limits, stopping } = service.parts;
    const json = await service.futures.answer(request_id, {
      holdMs: limits.holdMs,
      client: signal,
      stopping,
    });
    if (json !== undefined) return { json };
    return { type: "try_again", request_id, queue_state: "active", queue_state_reason: null };
  },
} as const satisfies Partial<Calls>;
