"""
Writes chats.json: what `apply_chat_template` of Hugging Face transformers makes of chats with templates of six kinds.

    python make_chat_golden.py      (needs transformers, tokenizers)

The templates are written here, in the manner of the models they are named after: their control tokens, their handling of
system messages, tools, earlier thoughts and the opening of the assistant's turn, with the constructs of Jinja they use.
"""

import json
from pathlib import Path

import transformers
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

SMOLLM2 = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a friendly guide.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

LLAMA3 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "1 Jan 2026" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none and tools is defined %}
    {{- "Tools: python\\n" }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is defined and tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if message.role == 'tool' or message.role == 'ipython' %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {{- '{"name": "' + call.name + '", "parameters": ' }}{{- call.arguments | tojson }}{{- "}<|eot_id|>" }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You answer briefly.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou answer briefly.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

QWEN3 = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or thought) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
        {{- raise_exception("roles must alternate: user, assistant, user") }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- else %}
        {{- raise_exception("only user and assistant roles") }}
    {%- endif %}
{%- endfor %}
"""

# Values that are put out as Python writes them, characters stripped, and line ends as an editor on Windows leaves them.
PYTHON = """{%- for m in messages %}
{{ m.role == 'user' }} {{ [m.role, true, none, 1.0, 0.5, "it's"] }} {{ {'first': loop.first, 'n': loop.index} }} {{ none }}
{{ m.content.strip('\\n.') }}|{{ m.content.lstrip('\\n') }}|{{ m.content.rstrip('😀.') }}|{{ 'x' ~ loop.last ~ none ~ 2.0 }}
  {% if m.tool_calls %}{{ m.tool_calls }}{{ m.tool_calls[0].function.arguments }}{% endif %}
{% endfor %}
{%- if add_generation_prompt %}go on: {% endif %}
""".replace("\n", "\r\n")

TEMPLATES = {"smollm2": SMOLLM2, "llama3": LLAMA3, "qwen2.5": QWEN25, "qwen3": QWEN3, "mistral": MISTRAL, "python": PYTHON}

USER = {"role": "user", "content": "  Which river flows through Prague?\n"}
ANSWER = {"role": "assistant", "content": "The Vltava, «naïve» <b>&amp;</b> 😀."}
TOOL = {"type": "function", "function": {"name": "search", "description": "Sucht «Ä» & <x>", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "search", "arguments": {"query": "Vltava é", "k": 3, "deep": True, "none": None, "x": 0.5}}}]}
CHATS = {
    "one question": {"messages": [USER]},
    "system": {"messages": [{"role": "system", "content": "Be brief. "}, USER]},
    "two turns": {"messages": [USER, ANSWER, {"role": "user", "content": "And Brno?"}]},
    "answered": {"messages": [USER, ANSWER]},
    "empty content": {"messages": [{"role": "user", "content": ""}]},
    "thought": {"messages": [USER, {"role": "assistant", "content": "<think>\nA river.\n</think>\n\nThe Vltava."}, {"role": "user", "content": "Sure?"}]},
    "spaces": {"messages": [USER, {"role": "assistant", "content": "\n  <think>\n\n  A river. \n</think>\n\n   The Vltava. \n"}]},
    "tools": {"messages": [USER, CALL, {"role": "tool", "content": "Vltava: 430 km"}], "tools": [TOOL]},
    "bad roles": {"messages": [ANSWER, USER]},
}


def render(tokenizer, template, chat, add_generation_prompt):
    try:
        return tokenizer.apply_chat_template(
            chat["messages"],
            tools=chat.get("tools"),
            chat_template=template,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
        )
    except Exception as error:  # the template's own raise_exception, or what it cannot express
        return {"error": type(error).__name__}


tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(models.BPE({"<s>": 0, "</s>": 1}, [])), bos_token="<s>", eos_token="</s>"
)
golden = {
    "reference": f"transformers {transformers.__version__}",
    "templates": TEMPLATES,
    "chats": CHATS,
    "cases": [
        {"template": name, "chat": title, "addGenerationPrompt": flag, "expected": render(tokenizer, template, chat, flag)}
        for name, template in TEMPLATES.items()
        for title, chat in CHATS.items()
        for flag in (False, True)
    ],
}
path = Path(__file__).with_name("chats.json")
path.write_text(json.dumps(golden, indent=1) + "\n")
print(f"wrote {path}: {sum(isinstance(c['expected'], str) for c in golden['cases'])} of {len(golden['cases'])} chats have a text")
